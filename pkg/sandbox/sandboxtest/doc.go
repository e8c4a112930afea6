// Package sandboxtest helps to test the changes that commands make in a tree.
// A Bench runs scripts in a root. Sequence returns random scripts for the tree
// that the script Repository makes. State describes a tree, so that two trees
// can be compared.
//
// TestMain of a package that uses a Bench must call proc.Init.
package sandboxtest
