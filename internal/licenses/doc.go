// Package licenses has the licences of the modules in the programs.
package licenses

import _ "embed"

// Text lists the modules that the programs and libraries of this repository link, each with its
// version and the text of its licence. make licenses writes it.
//
//go:embed licenses.txt
var Text string
