CREATE TABLE half (a int);
CREATE TABLE half (a int);
