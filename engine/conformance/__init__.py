"""The conformance harness: judges any market maker, in any language, against document 3."""
