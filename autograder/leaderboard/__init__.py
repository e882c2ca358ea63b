"""A ranking of settings that students choose: trained and measured here, under a stated budget."""
