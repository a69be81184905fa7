"""Secrets are known by name and by shape; ordinary text is not taken for one. The samples are put together here."""

import pytest

from trackbed.sources.git import plain_remote
from trackbed.sources.secrets import secret_name, secrets_in

A40 = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzLKEY9a2b"


@pytest.mark.parametrize(
    "path", ["id_rsa", "a/.env", ".env.local", "deploy/prod.env", "x/.aws/credentials", "store.jks", ".netrc"]
)
def test_a_file_of_secrets_is_known_by_its_name(path: str):
    assert secret_name(path)


@pytest.mark.parametrize(
    "path", ["id_rsa.pub", ".env.example", "env.py", "environment.yaml", "credentials.py", "cert.pem", ".envrc.md"]
)
def test_other_names_pass(path: str):
    assert not secret_name(path)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("-----BEGIN " + "RSA PRIVATE KEY-----\nMII", "private key"),
        ("-----BEGIN " + "PRIVATE KEY-----\\nMII", "private key"),
        ("-----BEGIN " + "OPENSSH PRIVATE KEY-----", "private key"),
        ("AKIA" + "IOSFODNN7ABCDEFG", "AWS access key"),
        ("aws_secret_" + f"access_key = {A40}", "AWS secret key"),
        ("ghp_" + "a1B2" * 9, "GitHub token"),
        ("glpat-" + "a1B2c" * 4, "GitLab token"),
        ("hf_" + "aBcDe" * 7, "Hugging Face token"),
        ("sk-" + "proj-" + "a1B2" * 10, "API key"),
        ("xoxb-" + "1234-" * 5, "Slack token"),
        ("LTAI" + "5tAbCdEfGhIjKlMn", "cloud access key"),
        ("WANDB_API_KEY=" + "0a1b2c3d" * 5, "experiment tracker key"),
        ("tbp_" + "0a1b2c3d" * 5, "Trackbed token"),
    ],
)
def test_a_secret_is_told_with_its_line(text: str, kind: str):
    assert list(secrets_in(f"one\ntwo {text} end\n".encode())) == [(2, kind)] or list(
        secrets_in(f"one\ntwo {text}\n".encode())
    ) == [(2, kind)]


@pytest.mark.parametrize(
    "text",
    [
        "the PRIVATE KEY is elsewhere", "AKIA", "AKIAlowercase12345678", "ghp_short", "sk-learn-contrib-and-a-long-name-of-words",
        "hf_" + "x" * 34, "ghp_" + "your_token_here" * 3, "tbp_placeholder", "0a1b2c3d" * 5, "-----BEGIN " + "PUBLIC KEY-----\n",
    ],
)  # fmt: skip
def test_ordinary_text_passes(text: str):
    assert list(secrets_in(text.encode())) == []


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("https://person:pw@example.com/a.git", "https://example.com/a.git"),
        ("https://ghp_token@example.com/a.git?x=1", "https://example.com/a.git"),
        ("ssh://git:pw@example.com:22/a.git", "ssh://git@example.com:22/a.git"),
        ("git@example.com:team/a.git", "git@example.com:team/a.git"),
        ("/srv/git/a.git", "/srv/git/a.git"),
        ("", ""),
    ],
)
def test_a_remote_is_kept_without_what_opens_it(url: str, plain: str):
    assert plain_remote(url) == plain
