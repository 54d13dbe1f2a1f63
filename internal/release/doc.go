// Package release holds tests of what a release hands on: the module, as a proxy serves it.
package release
