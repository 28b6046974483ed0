// Violation: a folder that is no layer.
