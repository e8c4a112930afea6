package proc

// confinesFiles reports whether commands at a level can only write in the roots.
func confinesFiles(level Level) bool { return level != Off && level != Restricted }

// protectsByPath reports whether the kernel keeps commands at a level from writing to
// single files in the roots.
func protectsByPath(level Level) bool { return level == L2 || level == Seatbelt }

// guardLevel returns the level as package writeguard knows it: Seatbelt, like L1, lets
// commands move directories that hold no protected files.
func guardLevel(level Level) Level {
	if level == Seatbelt {
		return L1
	}
	return level
}
