"""The filter `safety_terms`: adverts for gambling, drugs and the like, hate and filler, by lists of terms that resist evasion."""
