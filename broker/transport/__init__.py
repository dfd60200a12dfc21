"""Sockets: who may connect, which protocol he speaks, bytes in and out."""
