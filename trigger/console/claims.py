"""Who somebody is by a token of their provider's: the name for the trail, and what decides about the role. Pure."""

from collections.abc import Mapping
from typing import Any

from shared.console_access import Grants, Oidc
from trigger.console.person import LONGEST_CLAIM, MOST_CLAIMS, Identified, is_name
from trigger.identity_tokens import Unproven

LONGEST_SUBJECT = 500


def identified(oidc: Oidc, claims: Mapping[str, Any]) -> Identified:
    """Read who somebody is. Raises Unproven for claims that name nobody, or are not for this console."""
    _refuse_others(oidc, claims)
    if "email" in {oidc.name_claim, oidc.roles_claim} and claims.get("email_verified") is not True:
        # An address that the provider has not seen proved may be anybody's.
        raise Unproven("email_verified")
    name, subject = _claim(claims, oidc.name_claim), claims.get("sub")
    if not isinstance(name, str) or not is_name(name):
        raise Unproven(oidc.name_claim)
    if not isinstance(subject, str) or not 1 <= len(subject) <= LONGEST_SUBJECT or not subject.isprintable():
        raise Unproven("sub")
    return Identified(name, "oidc", oidc.issuer, subject, _values(oidc.grants, _claim(claims, oidc.roles_claim)))


def _refuse_others(oidc: Oidc, claims: Mapping[str, Any]) -> None:
    """See that a token for several parties was asked for by this one."""
    audience, party = claims.get("aud"), claims.get("azp")
    several = isinstance(audience, list) and len(audience) > 1
    if (several or party is not None) and party != oidc.client_id:
        raise Unproven("azp")


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """Give a claim by its name, or by the path to it through tables, as `realm_access.roles`."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _values(grants: Grants, claim: Any) -> tuple[str, ...]:
    """Read a claim that is a text or a list of texts; of very many, those come first that decide about something."""
    listed = [claim] if isinstance(claim, str) else claim if isinstance(claim, list) else []
    texts = [one for one in listed if isinstance(one, str) and 1 <= len(one) <= LONGEST_CLAIM and one.isprintable()]
    return tuple(sorted(dict.fromkeys(texts), key=lambda one: not grants.names(one))[:MOST_CLAIMS])
