"""Reading the objects of a live program: without running its code, without keeping anything alive."""
