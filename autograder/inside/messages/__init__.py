"""What passes the wall: plain values, their encoding, and the connection. Read values.py first."""
