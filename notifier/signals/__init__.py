"""What is counted, judged and told about the product's own work."""
