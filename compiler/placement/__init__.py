"""Where every buffer of every tile lies, with proofs."""
