"""Views of a run, a comparison, a calibration, a sweep and a history, independent of the face that renders them."""
