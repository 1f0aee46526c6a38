"""Mails and the customers who wrote them."""

import sqlite3

CUSTOMERS = [(1, "gold"), (2, "plain"), (3, "plain"), (4, "gold")]
SUBJECTS = ["My invoice is wrong", "The parcel is late", "I forgot my password", "Thank you for all"]
MAILS = [(number, (number + 2) % 4 + 1, number % 4 + 1, SUBJECTS[number // 4]) for number in range(16)]


def database():
    """Return the database."""
    found = sqlite3.connect(":memory:")
    found.execute("create table customers (id, kind)")
    found.execute("create table mails (number, customer, branch, subject)")
    found.executemany("insert into customers values (?, ?)", CUSTOMERS)
    found.executemany("insert into mails values (?, ?, ?, ?)", MAILS)
    return found


def read(number):
    """Return the subject of a mail and the kind of its customer."""
    query = "select subject, kind from mails join customers on customers.id = mails.customer where number = ?"
    return database().execute(query, [number]).fetchone()
