"""The long chaos run: what is promised, counted at the providers while everything breaks."""
