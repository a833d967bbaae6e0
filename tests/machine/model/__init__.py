"""What the design says must happen; written from it alone, and importing nothing of the product."""
