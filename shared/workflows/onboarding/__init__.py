"""Onboarding: a welcome packet, a signed document, a choice of equipment, an order; or an end that people chose."""
