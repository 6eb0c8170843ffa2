"""What all rooms read from and write to: paths that can be looked up, and files and folders that land whole."""

from anchorhead.disk.folders import check_folder_out, whole_folder
from anchorhead.disk.model_folders import check_apart, require_model_folder
from anchorhead.disk.paths import file_to_read, path_of, read_whole
from anchorhead.disk.pictures import check_picture_path
from anchorhead.disk.writing import check_writable, write_atomically

__all__ = [
    "check_apart",
    "check_folder_out",
    "check_picture_path",
    "check_writable",
    "file_to_read",
    "path_of",
    "read_whole",
    "require_model_folder",
    "whole_folder",
    "write_atomically",
]
