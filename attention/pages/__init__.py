"""Pages in which shipped models run, and the book's moving picture. Read glass_page.py first."""
