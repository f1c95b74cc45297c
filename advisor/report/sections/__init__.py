"""The sections of the report, one module and one template each."""
