package main

// unlocked is SQLite's access to files without locks.
const unlocked = "win32-none"
