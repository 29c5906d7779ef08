"""Takes alerts, decides, acts once, and checks that it helped."""
