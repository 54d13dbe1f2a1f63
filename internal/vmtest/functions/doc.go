// Package functions tests the back end "vfio:" in a virtual machine with an IOMMU: the kernel's
// vfio-pci has the functions, and this process drives them.
package functions
