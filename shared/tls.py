"""What is ours to say about TLS: whether the files that an address names can be used, and why a handshake failed.

The addresses name the files, as the drivers read them: `cafile`, `certfile`, `keyfile` for the broker and its
management interface, `sslrootcert`, `sslcert`, `sslkey` beside `sslmode` for PostgreSQL.
"""

import ssl


def file_problem(authority: str | None, certificate: str | None, key: str | None) -> str:
    """Say what is wrong with the files of certificates, '' if nothing is; what isn't named isn't looked at."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if authority:
            context.load_verify_locations(cafile=authority)
    except (OSError, ValueError) as error:
        return f"no certificates can be read from {authority}: {_reason(error)}"
    try:
        if certificate:
            context.load_cert_chain(certificate, key, password=lambda: "")
    except (OSError, ValueError) as error:
        return f"no certificate with its key can be read from {certificate} and {key or certificate}: {_reason(error)}"
    return ""


def handshake_problem(error: BaseException | None) -> str:
    """Say why a handshake failed, '' if `error` and what caused it are of another kind."""
    while error is not None and not isinstance(error, ssl.SSLError):
        error = error.__cause__
    match error:
        case None:
            return ""
        case ssl.SSLCertVerificationError():
            return f"its certificate is refused: {error.verify_message}"
        case ssl.SSLError(reason="WRONG_VERSION_NUMBER"):
            return "it speaks no TLS on this port"
        case _:
            return f"TLS: {_reason(error)}"


def _reason(error: BaseException) -> str:
    """Name the kind of error; the text of one can quote what it could not read."""
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None)
    return str(reason or type(error).__name__).lower().replace("_", " ")
