"""The only module that knows the mail client: one mail, within a deadline, to a server whose certificate counts."""

import ssl
from email.message import EmailMessage

import aiosmtplib
import anyio

from shared.channel_http import LONGEST_ERROR, SEND_SECONDS, Outcome
from shared.channels import Email
from shared.logs import logger
from shared.masking import plain, text_of
from shared.tls import handshake_problem

_log = logger(__name__)


async def send_mail(channel: Email, message: EmailMessage, *, seconds: float = SEND_SECONDS) -> Outcome:
    """Send it. Whatever happens is the outcome; nothing is raised but cancellation."""
    context = ssl.create_default_context(cafile=channel.ca_file or None)
    try:
        with anyio.fail_after(seconds):
            refused, _ = await aiosmtplib.send(
                message,
                sender=channel.sender,
                recipients=list(channel.to),
                hostname=channel.host,
                port=channel.port,
                username=channel.username or None,
                password=channel.password or None,
                use_tls=channel.security == "tls",
                # Without it a server that offers no encryption would be sent the password all the same.
                start_tls=channel.security == "starttls",
                tls_context=None if channel.security == "none" else context,
                timeout=seconds,
            )
    except TimeoutError:
        return Outcome(f"no answer within {seconds:g} s")
    except (aiosmtplib.SMTPException, OSError, ValueError) as error:
        problem = handshake_problem(error) or f"{type(error).__name__}: {text_of(error)}"
        return Outcome(plain(problem, LONGEST_ERROR).replace("\n", " "))
    if refused:
        # The others have it: sent again, they would have it twice.
        _log.warning("a mail was refused for some", refused=sorted(refused), server=channel.host)
    return Outcome()
