"""Families of exchanges: what people wish for in a first hour, and what the model should do."""
