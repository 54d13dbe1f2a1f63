// Package papers holds the formulas of the papers NFComms grew out of, as pure
// functions: no device, no clock, no randomness of its own. Each names its
// source, and the published figures are its tests.
//
// Three families: a link of 128-bit words with credits ([LinkEfficiency],
// [SimulateLink]), a PCI Express path ([TLP], [Lanes], [Hockney], [Contexts])
// and parallel members that exchange events every step ([Coverage],
// [StepBytes]). [Catalogue] evaluates all of them beside what was
// published.
//
// Every figure of this package is modelled. None was measured here, and none
// is about the machine it was computed on.
package papers
