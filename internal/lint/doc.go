// Package lint holds the project's own rules as tests: what imports what, what
// is documented, how long a function may be, words that must not appear, and
// that the documents say what the tree does. Every rule has a test that shows
// it finding a violation. "make lint" runs them.
package lint
