"""The functions of other tools, under their own names and signatures, drawn by Headscope."""
