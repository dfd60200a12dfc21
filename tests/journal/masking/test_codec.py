import pytest
from hypothesis import given
from hypothesis import strategies as st

from jdbcstore import passwords
from journal.errors import OptionError
from journal.masking import KEY_VARIABLE, MaskError, blowfish, mask, unmask

# Key, text, cipher: of Eric Young's test vectors, published with the cipher.
VECTORS = [
    ("0000000000000000", "0000000000000000", "4ef997456198dd78"),
    ("ffffffffffffffff", "ffffffffffffffff", "51866fd5b85ecb8a"),
    ("0123456789abcdef", "1111111111111111", "61f9c3802281b096"),
    ("fedcba9876543210", "0123456789abcdef", "0aceab0fc6a0a28d"),
    ("7ca110454a1a6e57", "01a1d6d039776742", "59c68245eb05282b"),
]
# Plain, masked: by Artemis's own DefaultSensitiveStringCodec, 2.56.0.
REFERENCE = [
    ("a", "-4413f2d1fa455a12"),
    ("swordfish", "-39d00cd7e0587d26516492ab43d93698"),
    ("", "22fa49a8d8fa115d"),
    ("password", "3a34fd21b82bf2a822fa49a8d8fa115d"),
    ("Grüße, 世界", "143a3ced986cc8c8efe6802630324e5b"),
    ("sixteen bytes 16", "-5bf3277813c76a948b4200c57cffc99dd05b6572705eea3"),
    ("p132", "-c7f0b9a82d554d"),
    ("p7", "11bca9e0ef0a80"),
    # Masked by Artemis, which cannot read them itself: it drops leading ones.
    ("p46", "-5545f9c548b089"),
    ("p457", "-4f1a31be57ca8"),
]


@pytest.mark.parametrize(("key", "text", "cipher"), VECTORS)
def test_the_cipher_is_blowfish(key, text, cipher):
    encrypted = blowfish.encrypt(bytes.fromhex(key), bytes.fromhex(text))

    assert encrypted[:8].hex() == cipher


@pytest.mark.parametrize(("plain", "masked"), REFERENCE)
def test_artemis_masks_are_read_and_written(plain, masked):
    assert unmask(f"ENC({masked})") == plain
    assert mask(plain) == f"ENC({masked})"


def test_artemis_key_may_be_another():
    assert unmask("ENC(-5fac209eacddffe569f1aaaaf5f2938b)", "another key") == "swordfish"


@given(st.text(max_size=40), st.text("abc", min_size=4, max_size=56))
def test_what_is_masked_comes_back(text, key):
    assert unmask(mask(text, key), key) == text


def test_plain_text_stays_as_it_is():
    assert unmask("swordfish") == "swordfish"
    assert unmask("ENC(half") == "ENC(half"


def test_the_environment_may_hold_the_key(monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, "another key")

    masked = mask("swordfish")

    assert unmask(masked, "another key") == "swordfish"
    assert unmask(masked) == "swordfish"


@pytest.mark.parametrize("text", ["ENC()", "ENC(swordfish)", "ENC(12)", "ENC(1234567812345678)"])
def test_invalid_mask_is_refused_and_not_repeated(text):
    with pytest.raises(MaskError) as caught:
        unmask(text)
    assert text not in str(caught.value)

    with pytest.raises(OptionError) as caught:
        passwords.unmask(text)
    assert text not in str(caught.value)


@pytest.mark.parametrize("key", [b"", b"abc", bytes(57)])
def test_a_key_of_a_wrong_size_is_refused(key):
    with pytest.raises(ValueError, match="4 to 56"):
        blowfish.encrypt(key, b"")


@pytest.mark.parametrize("data", [b"", b"1234567", b"123456789"])
def test_what_is_not_whole_blocks_is_refused(data):
    with pytest.raises(ValueError, match="whole blocks"):
        blowfish.decrypt(b"a key", data)
