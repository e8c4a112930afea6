package secret

// ListedStores returns the paths of storesIn.
func ListedStores() (all []string) {
	for dir, stores := range storesIn {
		for _, store := range stores {
			all = append(all, dir+"/"+store)
		}
	}
	return all
}
