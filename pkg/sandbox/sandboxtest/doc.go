// Package sandboxtest helps to test the changes that commands make in a tree. A
// CommandRoot runs scripts in a root. RandomScript returns random scripts for
// the tree that the script InitialTreeScript makes. DescribeTree describes a
// tree, so that two trees can be compared.
//
// TestMain of a package that uses a CommandRoot must call proc.Init.
package sandboxtest
