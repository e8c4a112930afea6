package proc

// moreHomeSecrets returns further stores of credentials and private data in a home, as
// paths in it, for a system (runtime.GOOS). No list of names has them: elsewhere, these
// names are ordinary.
func moreHomeSecrets(system string) []string {
	if system != "darwin" {
		return nil
	}
	return []string{
		"Library/Keychains", "Library/Cookies", "Library/HTTPStorages", "Library/Accounts", "Library/Safari", "Library/Messages", "Library/Mail",
		"Library/Application Support/com.apple.TCC", "Library/Application Support/Google/Chrome", "Library/Application Support/Chromium",
		"Library/Application Support/Microsoft Edge", "Library/Application Support/BraveSoftware", "Library/Application Support/Firefox",
		"Library/Application Support/1Password", "Library/Group Containers/2BUA8C4S2C.com.1password", "Library/Application Support/Bitwarden",
	}
}
