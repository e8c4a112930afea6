package upstream

// CheckAddress is the guard of a configured host for one address.
func CheckAddress(host string, private bool, address string) error {
	return addressGuard{host: host, private: private || namesPrivate(host)}.check("tcp", address, nil)
}
