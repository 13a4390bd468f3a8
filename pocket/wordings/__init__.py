"""How people put their wishes: templates (see `grammar.py`), apart from what answers them."""
