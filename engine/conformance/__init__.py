"""The conformance harness: judges any market maker, in any language, against the interface (spec 3)."""
