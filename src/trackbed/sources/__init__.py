"""Code trees and environments, captured without touching what they came from."""
