"""Pairwise masks on integer sums: the server sees the total of a round's nodes, and nothing of a single node.

Every two nodes agree on a secret (X25519) from which both derive the same stream of 64-bit words (HKDF, then
ChaCha20). One adds it to its words, the other subtracts it, modulo 2^64, so that the masks cancel exactly in
the total: the bits of the result do not change.

This hides sums from a server that follows the protocol, and from whoever reads its messages, as long as no two
totals of one round exist. It does not stop a server that makes up nodes of its own, or that gives a node other keys
than its peers'. docs/flower.md says what else it does not hide. Needs the package cryptography.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._core import Error

KEY_BYTES = 32


def _x25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import x25519
    except ImportError:
        raise Error("masks need the package cryptography; pip install cryptography") from None
    return x25519


def new_key() -> bytes:
    """Returns a private key from the system's randomness."""
    key: bytes = _x25519().X25519PrivateKey.generate().private_bytes_raw()
    return key


def public_key(private_key: bytes) -> bytes:
    key: bytes = _x25519().X25519PrivateKey.from_private_bytes(private_key).public_key().public_bytes_raw()
    return key


def mask(words: np.ndarray, private_key: bytes, public_keys: Sequence[bytes], about: bytes) -> np.ndarray:
    """Returns int64 words plus this node's masks. `public_keys` are those of all nodes, its own included, in the
    same order for all nodes; `about` names the use of the masks, which must differ from every other use."""
    own = public_key(private_key)
    keys = list(public_keys)
    if keys.count(own) != 1 or len(set(keys)) != len(keys):
        raise Error("masks: public_keys must have the node's own key, and none of them twice")
    if len(keys) < 2:
        raise Error("masks: at least two nodes are needed, or the sums of one are seen")
    salt = hashlib.sha256(about + b"".join(keys)).digest()
    place = keys.index(own)
    total = words.view(np.uint64).copy()
    for i, key in enumerate(keys):
        if i < place:
            total -= _stream(private_key, key, salt, len(words))
        elif i > place:
            total += _stream(private_key, key, salt, len(words))
    return total.view(np.int64)


def _stream(private_key: bytes, public: bytes, salt: bytes, count: int) -> np.ndarray:
    """Returns the words that the owners of the two keys can derive, and nobody else."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    x25519 = _x25519()
    try:
        peer = x25519.X25519PublicKey.from_public_bytes(public)
        secret = x25519.X25519PrivateKey.from_private_bytes(private_key).exchange(peer)
    except ValueError as error:
        raise Error(f"masks: not a public key ({error})") from None
    key = HKDF(hashes.SHA256(), KEY_BYTES, salt, b"fedsmooth masks").derive(secret)
    cipher = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
    return np.frombuffer(cipher.update(bytes(8 * count)), dtype="<u8")
