// Package stamp measures single calls layer by layer: a record travels with the call in its
// context, each layer takes the time that it needed, and back ends add what the device's answers
// say of its own clock. A call without a record pays for a comparison of its context's type.
package stamp
