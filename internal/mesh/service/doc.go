// Package service finds the nodes of a fabric by a service of DNS, as a StatefulSet of Kubernetes has
// one, and knows them by certificates of an authority. docs/fabric.md describes both.
package service
