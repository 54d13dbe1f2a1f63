package main

// attack is a client that misbehaves.
func attack(string, string) int { return 1 }
