// Package groups measures members that exchange data every step.
package groups
