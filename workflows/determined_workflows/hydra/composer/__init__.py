"""Program that composes a Hydra application as its script would; it runs under the Python of the application.

It needs Hydra and the standard library, and no other part of this product.
"""
