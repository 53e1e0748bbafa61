"""Backup and restore of a storage location.

copies    objects from one store to another, each compared with its checksum
make      a backup: one commit of a location, while it is written to
restore   another location from a backup
detach    what of a copy would touch the original's upstream
command   the command line
"""
