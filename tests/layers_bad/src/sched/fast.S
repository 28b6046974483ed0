# Violation: assembly outside context.
