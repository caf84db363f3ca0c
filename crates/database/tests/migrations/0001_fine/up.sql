CREATE TABLE fine (a int);
