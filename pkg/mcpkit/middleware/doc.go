// Package middleware has middleware for mcpkit.Command.Middleware and
// mcpkit.Tool.With.
package middleware
