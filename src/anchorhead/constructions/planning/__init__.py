"""How large a network becomes, before it is built."""
