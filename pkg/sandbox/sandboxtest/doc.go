// Package sandboxtest tests the changes that commands make in a tree. A Bench runs
// scripts in a root. Sequence makes random scripts for the repository that
// Repository makes. State describes a tree, so that two trees can be compared.
//
// TestMain of a package that uses a Bench calls proc.Init.
package sandboxtest
