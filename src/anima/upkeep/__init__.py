"""What an owner does now and then: looking after damage, tidying, and numbers."""
