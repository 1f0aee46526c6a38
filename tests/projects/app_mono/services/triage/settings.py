"""Settings of Django."""

SECRET_KEY = "of-a-test"
MAIL_MODEL = "gpt-4o"
MAIL_TIMEOUT = 60
MAIL_LABELS = {"invoice": "money", "parcel": "delivery", "password": "account"}
