"""The only writers of state, one file a step; every change writes its trail row."""
